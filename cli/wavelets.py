"""`wavefilt wavelets`."""

from __future__ import annotations

import json

import click


@click.command("wavelets")
@click.argument("family", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def command(family: str | None, as_json: bool) -> None:
    """List the discrete wavelets, all or those of one FAMILY (db, sym, coif, bior, ...).

    Taps are the length of the filter; db8 has 16. GSL calls PyWavelets' db4 "Daubechies 8".
    """
    from wavefilt.vocabulary import check
    from wavefilt.wavelets.filters import as_wavelet, names

    banks = [as_wavelet(name) for name in names()]
    if family is not None:
        try:
            check("family", family, sorted({bank.short_family_name for bank in banks}))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
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
        moments = row["vanishing_moments"] or "-"
        orthogonal = "yes" if row["orthogonal"] else "no"
        click.echo(
            f"{row['name']:8} {row['taps']:4} {moments:>7}  {row['family']:24} {orthogonal:10} {row['symmetry']}"
        )
