"""How fast Rewound is, as ratios to what its storage can do at all: `python -m benchmarks --case NAME`."""
