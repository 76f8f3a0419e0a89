/**
 * Schema 32: a message of a chat is stored when it arrives, and handled later in the line of its place. incoming: the
 * message of the channel as JSON; arrival: a ULID, the order of arrival. Both are null once the message was handled.
 */
export const schema0032 = `
alter table chat_messages add column incoming text;
alter table chat_messages add column arrival text;
create index chat_messages_arrival on chat_messages (channel, arrival) where arrival is not null;
`
