-- The accounts of users at the issuers that sign them in. `user_id` null: the address belongs to an account that this
-- identity is not linked to.
create table user_identities (
  issuer text not null,
  subject text not null,
  user_id text references users on delete cascade,
  email text not null,
  email_verified boolean not null,
  name text not null,
  -- When the token was issued that these claims come from.
  said_at timestamptz(3) not null,
  -- Whether the user's name and address are taken from this identity.
  is_source boolean not null,
  created_at timestamptz(3) not null default now(),
  primary key (issuer, subject)
);
create index user_identities_user on user_identities (user_id);
