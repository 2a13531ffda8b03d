-- Hashes of the first keys (ALCOVE_FIRST_KEY) that this database was started with. Each first key is made once, so a
-- deleted key stays deleted.
create table first_keys (hash text primary key);
