"""The work of sessions: jobs, their queue, their threads, and how much each user may have."""
