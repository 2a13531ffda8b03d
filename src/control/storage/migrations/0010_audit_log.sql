-- The audit log: who changed what, from where, and with what result. No foreign keys: its rows outlive the rows that
-- they name.
create table audit_log (
  id bigint generated always as identity primary key,
  at timestamptz(3) not null,
  -- Null: the row concerns only the user, or only the operator may read it.
  organization_id text,
  actor_id text not null,
  actor_email text not null,
  credential text not null,
  key_name text,
  client_address text not null,
  user_agent text not null,
  request_id text not null,
  -- The action: method and path template.
  action text not null,
  params jsonb not null,
  -- Ids and names of the changed things, from the path and from the answer.
  targets text[] not null,
  -- Null: the call still runs, or its process was killed during it.
  status integer,
  code text
);
create index audit_log_time on audit_log (at, id);
create index audit_log_organization on audit_log (organization_id, at, id);
create index audit_log_actor on audit_log (actor_id, at, id);
create index audit_log_action on audit_log (action, organization_id, at, id);
create index audit_log_targets on audit_log using gin (targets);
