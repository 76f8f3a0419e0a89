/**
 * Schema 1: workspaces, tokens, and the durable core. Times are milliseconds of the database's clock. Every message
 * pays for every index, so leased messages are found by the unique index `messages_one_lease`, which is needed anyway.
 */
export const schema0001 = `
create table workspaces (
  id text primary key,
  name text not null,
  role text not null,
  runtime text not null,
  settings text not null,
  status text not null,
  status_reason text,
  created_at bigint not null
);

-- The counters of a workspace: turns that hold a slot, turns that gave up their slot while they wait, waiting
-- messages, and the last number of its event log.
-- hosted: 1 when the platform's own runtime runs its turns, 0 when a bridge does.
create table workspace_load (
  workspace_id text primary key,
  hosted integer not null,
  slots integer not null,
  running integer not null default 0,
  suspended integer not null default 0,
  waiting integer not null default 0,
  seq bigint not null default 0
);

-- (workspace, principal, context): one turn at a time. The lease is on this row and fenced by its epoch.
-- ready_at: when its oldest unsettled message may run; null when no message waits, or while it is leased.
create table conversations (
  id text primary key,
  workspace_id text not null,
  principal text not null,
  context_id text not null,
  last_n integer not null default 0,
  ready_at bigint,
  lease_epoch integer not null default 0,
  lease_until bigint,
  worker text
);
create unique index conversations_name on conversations (workspace_id, principal, context_id);
create index conversations_ready on conversations (workspace_id, ready_at, id) where ready_at is not null;

create table tasks (
  id text primary key,
  workspace_id text not null,
  conversation_id text not null,
  context_id text not null,
  principal text not null,
  state text not null,
  status_message text,
  created_at bigint not null,
  updated_at bigint not null
);
create index tasks_list on tasks (workspace_id, updated_at, id);

-- state: queued, leased, stopping (cancelled while running), done, dead, canceled, answer (to a question of a turn).
-- suspended: its turn waits and holds no slot. asked: its turn asked a person in this attempt. replay_of, replayed_as:
-- a dead letter that was sent again. ready_at: the earliest time to run it; later than admitted_at before a retry.
-- appended: the number of the last stored event of the current lease.
create table messages (
  id text primary key,
  workspace_id text not null,
  conversation_id text not null,
  task_id text not null,
  n integer not null,
  dedupe bytea not null,
  content_hash text not null,
  idempotency_key text not null,
  envelope text not null,
  sender text not null,
  state text not null,
  failures integer not null default 0,
  losses integer not null default 0,
  interrupted integer not null default 0,
  session_retried integer not null default 0,
  suspended integer not null default 0,
  asked integer not null default 0,
  appended integer not null default 0,
  admitted_at bigint not null,
  ready_at bigint not null,
  expires_at bigint not null,
  settled_at bigint,
  settled_epoch integer,
  outcome text,
  reply text,
  reply_to text,
  replay_of text,
  replayed_as text,
  discarded_at bigint
);
create unique index messages_dedupe on messages (dedupe);
create index messages_task on messages (task_id, n);
create unique index messages_order on messages (conversation_id, n);
create unique index messages_open on messages (conversation_id, n) where settled_at is null;
create index messages_expiry on messages (expires_at) where state = 'queued';
create index messages_dead on messages (workspace_id, settled_at) where state = 'dead';
create unique index messages_one_lease on messages (conversation_id) where state in ('leased', 'stopping');

-- One numbered log per workspace, in commit order. A row holds several items, each one event on the wire.
-- delta: 1 when it holds only pieces of a reply, which are not needed once the reply is stored.
create table events (
  workspace_id text not null,
  seq bigint not null,
  task_id text,
  message_id text,
  at_ms bigint not null,
  delta integer not null default 0,
  items text not null,
  primary key (workspace_id, seq)
);
create index events_task on events (task_id, seq);
create index events_delta on events (at_ms) where delta = 1;

-- What a running turn asks a person. state: open, answered, denied, void (its worker is gone). tool and subject: the
-- action that a permission is asked for; only an owner answers that. The task's next message answers any other ask.
create table asks (
  message_id text not null,
  id text not null,
  workspace_id text not null,
  task_id text not null,
  epoch integer not null,
  state text not null,
  question text not null,
  tool text,
  subject text,
  answer_message_id text,
  answered_by text,
  asked_at bigint not null,
  expires_at bigint not null,
  primary key (message_id, epoch, id)
);
create index asks_open on asks (expires_at) where state = 'open';
create unique index asks_task on asks (task_id) where state = 'open';

-- What a door must deliver. state: pending, sending, sent, failed, unknown. In order, one in flight per channel.
create table deliveries (
  id text primary key,
  workspace_id text not null,
  task_id text not null,
  message_id text not null,
  door text not null,
  channel text not null,
  body text not null,
  state text not null,
  sender text,
  tries integer not null default 0,
  next_at bigint not null,
  created_at bigint not null,
  finished_at bigint,
  receipt text,
  error text
);
create index deliveries_due on deliveries (door, channel, id) where state in ('pending', 'sending');
create index deliveries_task on deliveries (task_id);

create table sessions (
  conversation_id text primary key,
  workspace_id text not null,
  host text not null,
  runtime text not null,
  token text not null,
  updated_at bigint not null
);

create table tokens (
  id text primary key,
  kind text not null,
  name text not null,
  role text not null,
  hash text not null,
  created_at bigint not null,
  expires_at bigint
);
create unique index tokens_hash on tokens (hash);
`
