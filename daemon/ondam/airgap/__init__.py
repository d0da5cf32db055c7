"""The proof that nothing goes out: what every process of Ondam tried, and what it could have reached."""
