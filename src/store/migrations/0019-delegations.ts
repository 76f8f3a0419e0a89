/**
 * Schema 19: a delegated message knows its parent and the first message of its tree. Both are null for every other
 * message, and both indexes leave those out, so a message that was not delegated costs nothing more.
 */
export const schema0019 = `
-- parent_id: the message whose turn sent this one. root_id: the first message of the tree. parent_epoch: the attempt at
-- the parent that asked for it last. child_open: 1 until its end was handled: reported to its parent, or not needed.
-- delegation: the limits that came with it, as JSON.
alter table messages add column parent_id text;
alter table messages add column root_id text;
alter table messages add column parent_epoch integer;
alter table messages add column child_open integer;
alter table messages add column delegation text;
create index messages_tree on messages (root_id) where root_id is not null;
create index messages_open_children on messages (parent_id) where child_open = 1;
`
