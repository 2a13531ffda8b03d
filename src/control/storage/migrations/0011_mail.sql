-- Mail that is to be sent: written in the transaction that makes it true, sent after it, deleted when a server has taken it.
create table mail_outbox (
  id text primary key default gen_random_uuid()::text,
  -- The id of what it tells of; mail about what is no more is taken back.
  about text not null,
  recipient text not null,
  subject text not null,
  body text not null,
  attempts integer not null default 0,
  -- Also how long whoever is sending it has: if they die, it is due again then.
  next_attempt_at timestamptz(3) not null,
  created_at timestamptz(3) not null
);
create index mail_outbox_due on mail_outbox (next_attempt_at);
create index mail_outbox_about on mail_outbox (about);
