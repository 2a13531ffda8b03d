-- What control signs tickets with (src/wire/ticket.ts). The private key is encrypted as other secrets are; gates are told the public one.
create table ticket_keys (
  id text primary key,
  public_key text not null,
  private_key text not null,
  created_at timestamptz not null
);
