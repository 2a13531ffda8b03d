-- Webhooks, which tell other systems about events: src/control/webhooks/README.md.

create table webhook_applications (
  organization_id text primary key references organizations on delete cascade,
  provider text not null check (provider in ('embedded', 'svix')),
  -- The provider's id of the application. Null until an initialization has succeeded.
  application_id text,
  last_error text,
  retry_count integer not null,
  -- When a failed initialization is retried.
  retry_at timestamptz(3),
  -- Whether the organization has an endpoint. Without one, no messages are written.
  is_listening boolean not null default false,
  -- Whether the provider has endpoints of the application, and when the provider was last asked.
  has_endpoints boolean not null default false,
  endpoints_read_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index webhook_applications_to_retry on webhook_applications (retry_at) where retry_at is not null;

-- The endpoints of the embedded sender.
create table webhook_endpoints (
  id text primary key,
  organization_id text not null references webhook_applications on delete cascade,
  url text not null,
  description text not null,
  -- The event types that the endpoint gets. Empty: all types.
  events text[] not null,
  -- The encrypted secrets. After a rotation, messages are signed with the previous secret too, for a while.
  secret text not null,
  previous_secret text,
  previous_secret_until timestamptz(3),
  disabled_at timestamptz(3),
  disabled_reason text,
  -- Time of the first failure since the last success.
  failing_since timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index webhook_endpoints_of_organization on webhook_endpoints (organization_id, created_at, id);

-- The outbox: one row for each event that an endpoint may want. The triggers below write it in the transaction of the
-- change.
create table webhook_messages (
  id bigint generated always as identity primary key,
  -- The message id that receivers see, equal in every attempt.
  public_id text not null unique default 'msg_' || replace(gen_random_uuid()::text, '-', ''),
  organization_id text not null,
  event text not null,
  subject_id text not null,
  name text,
  sandbox_class text,
  old_state text,
  state text,
  at timestamptz(3) not null,
  is_dispatched boolean not null default false
);
create index webhook_messages_to_dispatch on webhook_messages (id) where not is_dispatched;
create index webhook_messages_by_time on webhook_messages (at);

-- The delivery of one message to one endpoint.
create table webhook_deliveries (
  id bigint generated always as identity primary key,
  message_id bigint not null references webhook_messages on delete cascade,
  organization_id text not null,
  -- An endpoint of the embedded sender, or `svix:<organizationId>`.
  endpoint_id text not null,
  -- Deliveries in one lane of an endpoint are sent one after the other: each begins when the previous one has ended.
  lane text not null,
  state text not null check (state in ('waiting', 'delivered', 'failed')),
  attempts integer not null default 0,
  -- When the next attempt is made, or when the claim of the present attempt ends. Null: another delivery of the lane
  -- comes first.
  due_at timestamptz(3),
  ended_at timestamptz(3)
);
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, due_at) where state = 'waiting' and due_at is not null;
create index webhook_deliveries_next on webhook_deliveries (due_at) where state = 'waiting' and due_at is not null;
create index webhook_deliveries_in_lane on webhook_deliveries (endpoint_id, lane, message_id) where state = 'waiting';
create index webhook_deliveries_of_message on webhook_deliveries (message_id);
create index webhook_deliveries_by_end on webhook_deliveries (endpoint_id, id);

create table webhook_attempts (
  id bigint generated always as identity primary key,
  delivery_id bigint not null references webhook_deliveries on delete cascade,
  endpoint_id text not null,
  number integer not null,
  at timestamptz(3) not null,
  duration_milliseconds integer not null,
  -- HTTP status of the reply. Null: there was no reply, and `error` says why.
  status integer,
  error text,
  is_delivered boolean not null
);
create index webhook_attempts_of_endpoint on webhook_attempts (endpoint_id, id);
create index webhook_attempts_of_delivery on webhook_attempts (delivery_id);

-- Access to an organization's webhook portal, and when it ends. Only hashes of the tokens are stored.
create table webhook_portal_tokens (
  hash text primary key check (hash ~ '^[0-9a-f]{64}$'),
  -- A link can be exchanged for a session once.
  kind text not null check (kind in ('link', 'session')),
  organization_id text not null references organizations on delete cascade,
  user_id text not null references users on delete cascade,
  expires_at timestamptz(3) not null
);
create index webhook_portal_tokens_by_expiry on webhook_portal_tokens (expires_at);

-- Triggers instead of statements at each write: snapshots are written in many places, and none of them may be
-- forgotten. A trigger runs while its row is locked. The messages of one sandbox or snapshot therefore have ids in the
-- order of the commits.
create function tell_webhooks(
  organization_id text, event text, subject_id text, name text, sandbox_class text, old_state text, state text,
  at timestamptz
) returns void language plpgsql as $$
begin
  insert into webhook_messages (organization_id, event, subject_id, name, sandbox_class, old_state, state, at)
  select a.organization_id, $2, $3, $4, $5, $6, $7, $8
  from webhook_applications a where a.organization_id = $1 and a.is_listening;
  if found then perform pg_notify('webhook_messages', ''); end if;
end $$;

create function tell_webhooks_of_sandbox() returns trigger language plpgsql as $$
begin
  -- A warm sandbox is announced as created when it is claimed.
  if tg_op = 'INSERT' or old.warm_pool_id is not null then
    perform tell_webhooks(new.organization_id, 'sandbox.created', new.id, new.name, new.sandbox_class, null, new.state,
      new.created_at);
  else
    perform tell_webhooks(new.organization_id, 'sandbox.state.updated', new.id, new.name, new.sandbox_class, old.state,
      new.state, new.updated_at);
  end if;
  return null;
end $$;

create trigger webhooks_of_new_sandbox after insert on sandboxes
  for each row when (new.warm_pool_id is null) execute function tell_webhooks_of_sandbox();
create trigger webhooks_of_sandbox after update of state on sandboxes
  for each row when (new.warm_pool_id is null and (old.state <> new.state or old.warm_pool_id is not null))
  execute function tell_webhooks_of_sandbox();

create function tell_webhooks_of_snapshot() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    perform tell_webhooks(new.organization_id, 'snapshot.created', new.id, new.name, null, null, new.state, new.created_at);
  elsif tg_op = 'UPDATE' then
    perform tell_webhooks(new.organization_id, 'snapshot.state.updated', new.id, new.name, null, old.state, new.state,
      new.updated_at);
  else
    perform tell_webhooks(old.organization_id, 'snapshot.removed', old.id, old.name, null, null, null, clock_timestamp());
  end if;
  return null;
end $$;

create trigger webhooks_of_new_snapshot after insert on snapshots
  for each row when (new.organization_id is not null) execute function tell_webhooks_of_snapshot();
create trigger webhooks_of_snapshot after update of state on snapshots
  for each row when (new.organization_id is not null and old.state <> new.state)
  execute function tell_webhooks_of_snapshot();
create trigger webhooks_of_removed_snapshot after delete on snapshots
  for each row when (old.organization_id is not null) execute function tell_webhooks_of_snapshot();
