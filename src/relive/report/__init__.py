"""Tables, figures and pages made from results; nothing here needs torch."""
