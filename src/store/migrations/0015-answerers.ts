/** Schema 15: who answered a permission ask, through which door, and when. `answered_by` is the name of the person. */
export const schema0015 = `
alter table asks add column answered_principal text;
alter table asks add column answered_door text;
alter table asks add column answered_at bigint;
`
