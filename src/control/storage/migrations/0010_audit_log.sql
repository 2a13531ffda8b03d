-- Who wrote what, from where, with what result. Nothing here refers to another table: the log outlives what it speaks of.
create table audit_log (
  id bigint generated always as identity primary key,
  at timestamptz(3) not null,
  -- null: what is nobody's but the user's own, and what only the operator of the server may know.
  organization_id text,
  actor_id text not null,
  actor_email text not null,
  credential text not null,
  key_name text,
  client_address text not null,
  user_agent text not null,
  request_id text not null,
  -- Method and template of the path.
  action text not null,
  params jsonb not null,
  -- Ids and names of what it was about: what the path said, and what the answer was.
  targets text[] not null,
  -- null: it is still running, or its process was killed while it was.
  status integer,
  code text
);
create index audit_log_time on audit_log (at, id);
create index audit_log_organization on audit_log (organization_id, at, id);
create index audit_log_actor on audit_log (actor_id, at, id);
create index audit_log_action on audit_log (action, organization_id, at, id);
create index audit_log_targets on audit_log using gin (targets);
