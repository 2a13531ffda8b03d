-- Messages about sandboxes have what the timeline has (actor and reason), and the name and labels of the sandbox.

alter table webhook_messages
  -- Kind of actor (user, runner or timer), and its id or name. Null for snapshots.
  add column by_kind text,
  add column by_id text,
  add column reason text,
  add column cause jsonb,
  -- Null for snapshots, and for labels that are too long to be stored with every message.
  add column labels jsonb;

-- The last two parameters are the sandbox after the change, and the event of its timeline.
create function tell_webhooks_why(event text, old_state text, at timestamptz, sandbox sandboxes, said sandbox_events)
returns void language plpgsql as $$
begin
  insert into webhook_messages (organization_id, event, subject_id, name, sandbox_class, old_state, state, at,
    by_kind, by_id, reason, cause, labels)
  values ($4.organization_id, $1, $4.id,
    -- A sandbox that is to be destroyed is renamed (src/control/sandboxes/verbs/destroy.ts), so the old name is
    -- restored here.
    case when $4.desired_state = 'destroyed' then regexp_replace($4.name, '^DESTROYED_(.*)_\d+$', '\1') else $4.name end,
    $4.sandbox_class, $2, $4.state, $3, $5.by_kind, $5.by_id, $5.reason, $5.cause,
    case when octet_length($4.labels::text) <= 4096 then $4.labels end);
  perform pg_notify('webhook_messages', '');
end $$;

-- A change and its event are written by one statement, and this trigger runs at its end. The newest event is therefore
-- that of the change.
create or replace function tell_webhooks_of_sandbox() returns trigger language plpgsql as $$
declare
  said sandbox_events;
begin
  -- Most organizations have no endpoint, so this is checked first.
  if not exists (select from webhook_applications where organization_id = new.organization_id and is_listening) then
    return null;
  end if;
  select * into said from sandbox_events where sandbox_id = new.id order by id desc limit 1;
  if said.to_state is distinct from new.state or said.at is distinct from new.state_changed_at then
    said := null;
  end if;
  -- A warm sandbox is announced as created when it is claimed.
  if tg_op = 'INSERT' or old.warm_pool_id is not null then
    perform tell_webhooks_why('sandbox.created', null, new.created_at, new, said);
  else
    perform tell_webhooks_why('sandbox.state.updated', old.state, new.updated_at, new, said);
  end if;
  return null;
end $$;

-- For an event that does not change the state, such as a process killed for lack of memory. The lock keeps the messages
-- of one sandbox in the order of the commits.
create function tell_webhooks_of_mishap() returns trigger language plpgsql as $$
declare
  sandbox sandboxes;
begin
  if not exists (select from webhook_applications where organization_id = new.organization_id and is_listening) then
    return null;
  end if;
  select * into sandbox from sandboxes where id = new.sandbox_id and warm_pool_id is null for no key update;
  if found then perform tell_webhooks_why('sandbox.mishap', null, new.at, sandbox, new); end if;
  return null;
end $$;

create trigger webhooks_of_mishap after insert on sandbox_events
  for each row when (new.by_kind = 'runner' and new.from_state = new.to_state) execute function tell_webhooks_of_mishap();

-- Messages about a failed snapshot have the reason.
create or replace function tell_webhooks_of_snapshot() returns trigger language plpgsql as $$
declare
  subject snapshots := case when tg_op = 'DELETE' then old else new end;
begin
  if not exists (select from webhook_applications where organization_id = subject.organization_id and is_listening) then
    return null;
  end if;
  insert into webhook_messages (organization_id, event, subject_id, name, old_state, state, at, reason)
  values (subject.organization_id,
    case tg_op when 'INSERT' then 'snapshot.created' when 'UPDATE' then 'snapshot.state.updated' else 'snapshot.removed' end,
    subject.id, subject.name,
    case when tg_op = 'UPDATE' then old.state end,
    case when tg_op <> 'DELETE' then new.state end,
    case tg_op when 'INSERT' then new.created_at when 'UPDATE' then new.updated_at else clock_timestamp() end,
    case when tg_op <> 'DELETE' then new.error_reason end);
  perform pg_notify('webhook_messages', '');
  return null;
end $$;

drop function tell_webhooks(text, text, text, text, text, text, text, timestamptz);
