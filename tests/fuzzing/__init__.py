"""Files and command lines as nobody wrote them: every one is taken or refused, and nothing crashes."""
