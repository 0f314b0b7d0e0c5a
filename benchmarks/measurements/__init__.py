"""What the README and docs/measurements.md show: measured, kept in a file a machine, written out.

    plan         what is measured, in which order
    run          measures it                          -> docs/measurements/MACHINE.json
    document     reads those files
    page, chart, readme                               -> docs/measurements.md, .svg, README.md

A module uses only those above it. `python -m measurements` (from benchmarks/) is the command.
"""
