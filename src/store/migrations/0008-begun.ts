/**
 * Schema 8: whether the turn of a leased message has begun is a column. Earlier versions derived it: a turn of the
 * platform began with its claim, a turn of a bridge with its first event. Leases that exist now keep that answer.
 */
export const schema0008 = `
alter table messages add column begun integer not null default 0;
update messages set begun = 1 where state in ('leased', 'stopping') and (appended > 0 or not exists (
  select 1 from conversations c where c.id = messages.conversation_id and c.worker like 'bridge.%'));
`
