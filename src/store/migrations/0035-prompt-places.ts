/**
 * Schema 35: a prompt in several places. chat_prompts: one ask has a prompt in each place where an owner reads it, and a
 * notice (without buttons) where the person who wrote reads it. pairing: JSON of a person who wants to be let in; such a
 * prompt belongs to no task. chat_places.person: the person of a direct chat, so that an owner is found there for as long
 * as the place is known.
 */
export const schema0035 = `
drop index chat_prompts_ask;
alter table chat_prompts add column notice integer not null default 0;
alter table chat_prompts add column pairing text;
update chat_prompts set notice = 1 where budget is not null and budget not like '%"toUsd"%';
create unique index chat_prompts_ask on chat_prompts (ask_id, channel, place, notice);
create index chat_prompts_message on chat_prompts (channel, message_id);
alter table chat_places add column person text;
update chat_places set person = (select min(m.person) from chat_messages m
    where m.channel = chat_places.channel and m.place = chat_places.place)
  where description like '%"isDirect":true%';
create index chat_places_person on chat_places (channel, person) where person is not null;
create index pairings_pending on pairings (channel, created_at) where state = 'pending';
`
