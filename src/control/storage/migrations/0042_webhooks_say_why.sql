-- Messages about sandboxes say what the timeline says: by whom, why, and the name and labels that the sandbox had.

alter table webhook_messages
  -- user, runner or timer, and which one. Null for snapshots.
  add column by_kind text,
  add column by_id text,
  add column reason text,
  add column cause jsonb,
  -- Null for snapshots, and where they are too long to be kept with every message.
  add column labels jsonb;

-- The parameters are the last two: the sandbox as its change was written, and the event of its timeline.
create function tell_webhooks_why(event text, old_state text, at timestamptz, sandbox sandboxes, said sandbox_events)
returns void language plpgsql as $$
begin
  insert into webhook_messages (organization_id, event, subject_id, name, sandbox_class, old_state, state, at,
    by_kind, by_id, reason, cause, labels)
  values ($4.organization_id, $1, $4.id,
    -- A sandbox gives up its name when it is to be destroyed (src/control/sandboxes/destroy.ts).
    case when $4.desired_state = 'destroyed' then regexp_replace($4.name, '^DESTROYED_(.*)_\d+$', '\1') else $4.name end,
    $4.sandbox_class, $2, $4.state, $3, $5.by_kind, $5.by_id, $5.reason, $5.cause,
    case when octet_length($4.labels::text) <= 4096 then $4.labels end);
  perform pg_notify('webhook_messages', '');
end $$;

-- A change and its event are written by one statement, and this runs at its end, so the newest event is that of the change.
create or replace function tell_webhooks_of_sandbox() returns trigger language plpgsql as $$
declare
  said sandbox_events;
begin
  -- Nobody listens to most organizations: that is found out first, before anything is made ready to be told.
  if not exists (select from webhook_applications where organization_id = new.organization_id and is_listening) then
    return null;
  end if;
  select * into said from sandbox_events where sandbox_id = new.id order by id desc limit 1;
  if said.to_state is distinct from new.state or said.at is distinct from new.state_changed_at then
    said := null;
  end if;
  -- Nobody knew of a sandbox that was started ahead until it was claimed.
  if tg_op = 'INSERT' or old.warm_pool_id is not null then
    perform tell_webhooks_why('sandbox.created', null, new.created_at, new, said);
  else
    perform tell_webhooks_why('sandbox.state.updated', old.state, new.updated_at, new, said);
  end if;
  return null;
end $$;

-- Something that happened to a sandbox and left it as it was, such as a process killed for want of memory. The lock keeps the
-- messages of one sandbox in the order of commit.
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

-- A snapshot says why it failed.
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
