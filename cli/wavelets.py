"""`wavefilt wavelets`."""

from __future__ import annotations

import json

import click

from .options import Text, as_json


def families() -> list[str]:
    from wavefilt.wavelets.filters import as_wavelet, names

    return sorted({as_wavelet(name).short_family_name for name in names()})


def others() -> str:
    """What takes the place of wavelets with the transforms that have other filters."""
    from wavefilt.transforms import DTCWT, FK
    from wavefilt.wavelets.dual_tree import BIORTS, QSHIFTS

    return (
        f"\n--transform dtcwt: FIRST,LATER such as {DTCWT.default_wavelet}; FIRST is {', '.join(BIORTS)}, LATER "
        f"{', '.join(QSHIFTS)}\n--transform fk: sineTxN, windows of T traces by N samples, such as {FK.default_wavelet}"
    )


@click.command("wavelets")
@click.argument("family", required=False, type=Text(names=families))
@as_json
def command(family: str | None, as_json: bool) -> None:
    """List the discrete wavelets, all or those of one FAMILY (db, sym, coif, bior, ...).

    Taps are the length of the filter; db8 has 16. GSL calls PyWavelets' db4 "Daubechies 8".
    """
    from wavefilt.wavelets.filters import as_wavelet, names

    banks = [as_wavelet(name) for name in names()]
    if family is not None:
        if family not in families():
            raise click.UsageError(f"{family!r} is no family of wavelets, which are {', '.join(families())}")
        banks = [bank for bank in banks if bank.short_family_name == family]
    banks.sort(key=lambda bank: (bank.short_family_name, bank.dec_len, bank.name))
    rows = [
        {
            "name": bank.name,
            "family": bank.family_name,
            "taps": bank.dec_len,
            "vanishing_moments": bank.vanishing_moments_psi,
            "orthogonal": bank.orthogonal,
            "symmetry": bank.symmetry,
        }
        for bank in banks
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    click.echo(f"{'name':8} {'taps':>4} {'moments':>7}  {'family':24} {'orthogonal':10} symmetry")
    for row in rows:
        values = row | {"orthogonal": "yes" if row["orthogonal"] else "no"}
        values["vanishing_moments"] = row["vanishing_moments"] or "-"
        line = "{name:8} {taps:4} {vanishing_moments:>7}  {family:24} {orthogonal:10} {symmetry}"
        click.echo(line.format(**values))
    if family is None:
        click.echo(others())
