-- Which keys of its operator (ALCOVE_FIRST_KEY) this database has been started with: each is made once, so that one that was
-- deleted stays so.
create table first_keys (hash text primary key);
