"""What a rule may ask about detail coefficients: medians of |d|, mean squares, counts. `interface` has the questions.

`batch` answers them for details in memory; `mergeable` for details that are seen in parts, by passes whose counts add
up, with exact medians by `radix_select`; `summation` makes the sums of squares of such parts those of whole rows.
"""
