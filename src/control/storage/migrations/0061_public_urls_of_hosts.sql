-- The URL at which clients reach the host's gate, as the host first told it after its token was traded. Empty: it told
-- none. Null: it has not connected since.
alter table hosts add column public_url text;
