-- The keys with which control signs tickets (src/wire/ticket.ts). The private key is encrypted; gates get the public
-- key.
create table ticket_keys (
  id text primary key,
  public_key text not null,
  private_key text not null,
  created_at timestamptz not null
);
