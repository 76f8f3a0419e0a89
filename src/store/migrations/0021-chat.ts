/**
 * Schema 21: chat channels. `place` is a chat, channel or thread in the format of the channel; `id` of a message is the
 * id that the channel admits it by.
 *
 * channels: the bots. token: a secret that no answer shows. holder: the platform that runs the channel until holder_until,
 * so that two platforms on one store are one bot. chat_places: the conversation of a place, and the last message seen
 * there. pairings: people who asked for access; their first messages wait in held_messages. chat_messages: messages that
 * were handled, with the task and the progress message of each. chat_prompts: buttons that were sent. delivery_parts: the
 * messages that a delivery consists of; tried_at is the time of the first try.
 */
export const schema0021 = `
create table channels (
  name text primary key,
  kind text not null,
  token text not null,
  account text,
  workspace_id text,
  settings text not null,
  problem text,
  holder text,
  holder_until bigint not null default 0,
  created_at bigint not null
);
create table channel_bindings (
  channel text not null,
  place text not null,
  workspace_id text not null,
  created_at bigint not null,
  primary key (channel, place)
);
create table pairings (
  channel text not null,
  person text not null,
  name text not null,
  code text not null,
  state text not null,
  role text not null,
  decided_by text,
  created_at bigint not null,
  decided_at bigint,
  primary key (channel, person)
);
create unique index pairings_code on pairings (code);
create table held_messages (
  channel text not null,
  person text not null,
  place text not null,
  id text not null,
  message text not null,
  held_at bigint not null,
  primary key (channel, place, id)
);
create index held_messages_person on held_messages (channel, person, held_at);
create table chat_places (
  channel text not null,
  place text not null,
  description text not null,
  context_id text not null,
  seen_id text,
  seen_at bigint not null default 0,
  guard text,
  primary key (channel, place)
);
create table chat_messages (
  channel text not null,
  place text not null,
  id text not null,
  message_id text not null,
  person text not null,
  task_id text,
  state text not null,
  progress_id text,
  received_at bigint not null,
  primary key (channel, place, id)
);
create index chat_messages_task on chat_messages (task_id) where task_id is not null;
create index chat_messages_open on chat_messages (channel, received_at) where state = 'open';
create index chat_messages_received on chat_messages (received_at);
create table chat_prompts (
  id text primary key,
  channel text not null,
  place text not null,
  message_id text,
  task_id text not null,
  ask_id text not null,
  text text not null,
  created_at bigint not null
);
create unique index chat_prompts_ask on chat_prompts (ask_id);
create table delivery_parts (
  delivery_id text not null,
  n integer not null,
  content text not null,
  state text not null,
  receipt text,
  tried_at bigint,
  primary key (delivery_id, n)
);
`
