"""`wavefilt wavelets`."""

from __future__ import annotations

import json

import click

from wavefilt.wavelets.filters import as_wavelet, names

from .options import Text, as_json

FAMILIES = sorted({as_wavelet(name).short_family_name for name in names()})


@click.command("wavelets", epilog="Example: wavefilt wavelets sym")
@click.argument("family", required=False, type=Text(names=FAMILIES))
@as_json
def wavelets(family: str | None, as_json: bool) -> None:
    """List all discrete wavelets, or only one FAMILY (db, sym, coif, bior, ...).

    Taps are the length of the filter; db8 has 16. GSL calls PyWavelets' db4 "Daubechies 8".
    """
    from wavefilt.transforms import DTCWT, FK
    from wavefilt.wavelets.dual_tree import BIORTS, QSHIFTS

    filters = sorted(map(as_wavelet, names()), key=lambda one: (one.short_family_name, one.dec_len, one.name))
    if family is not None:
        if family not in FAMILIES:
            raise click.UsageError(f"{family!r} is not a wavelet family; families are {', '.join(FAMILIES)}")
        filters = [one for one in filters if one.short_family_name == family]
    rows = [
        {
            "name": one.name,
            "family": one.family_name,
            "taps": one.dec_len,
            "vanishing_moments": one.vanishing_moments_psi,
            "orthogonal": one.orthogonal,
            "symmetry": one.symmetry,
        }
        for one in filters
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    line = "{name:8} {taps:>4} {vanishing_moments:>7}  {family:24} {orthogonal!s:10} {symmetry}"
    click.echo(line.format_map({name: name for name in rows[0]} | {"vanishing_moments": "moments"}))
    for row in rows:
        click.echo(line.format_map(row | {"vanishing_moments": row["vanishing_moments"] or "-"}))
    if family is None:
        click.echo(
            f"\n--transform dtcwt: FIRST,LATER such as {DTCWT.default_wavelet}; FIRST is {', '.join(BIORTS)}, LATER "
            f"{', '.join(QSHIFTS)}\n--transform fk: sineTxN, windows of T traces by N samples, or "
            f"{FK.default_wavelet}"
        )
