"""The leaderboard as a folder of static pages, from the results of any number of runs."""
