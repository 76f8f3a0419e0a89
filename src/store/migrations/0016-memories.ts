/**
 * Schema 16: what agents remember. A search reads `memory_words`, an index of words that works the same on every engine.
 * Its key begins with the namespace, so a search cannot even reach the words of another one, and the newest memories of a
 * word are next to each other. `count`: how often the word occurs in the memory. `hash`: of kind and
 * text; the same text is stored once.
 */
export const schema0016 = `
create table memories (
  id text primary key,
  namespace text not null,
  kind text not null,
  text text not null,
  hash text not null,
  written_by text not null,
  created_at bigint not null,
  expires_at bigint
);
create index memories_list on memories (namespace, id);
create unique index memories_text on memories (namespace, hash);
create index memories_expiry on memories (expires_at) where expires_at is not null;

create table memory_words (
  namespace text not null,
  word text not null,
  memory_id text not null,
  count integer not null,
  primary key (namespace, word, memory_id)
);
`
