-- Mail to send. It is written in the transaction of the change that it is about, and deleted after a mail server has
-- accepted it.
create table mail_outbox (
  id text primary key default gen_random_uuid()::text,
  -- Id of the thing that the mail is about. Mail about a deleted thing is withdrawn.
  about text not null,
  recipient text not null,
  subject text not null,
  body text not null,
  attempts integer not null default 0,
  -- When the mail is sent next. While a process sends it: when its claim ends, after which the mail is due again.
  next_attempt_at timestamptz(3) not null,
  created_at timestamptz(3) not null
);
create index mail_outbox_due on mail_outbox (next_attempt_at);
create index mail_outbox_about on mail_outbox (about);
