"""Which answers to buy and with how much budget: one file per published method. They ask the curator."""
