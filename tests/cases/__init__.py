"""Small inputs that broke other tools: one test or one argument for each thing that is asked of them."""
