"""Rules of one kind of writing each: cricket, programs, notes of clinics and offices, quantities."""
