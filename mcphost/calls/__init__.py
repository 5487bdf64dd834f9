"""What is under way and short-lived: which rounds are claimed and how they ended, which links were
opened."""
