-- One-time links that sign a user in without a password. A new link replaces the user's former one.
create table sign_in_links (
  user_id text primary key references users (id) on delete cascade,
  -- SHA-256 of the token in the link.
  hash text not null unique,
  expires_at timestamptz(3) not null
);
