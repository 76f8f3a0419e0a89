/** Schema 26: prompts of a chat that are about a budget. */
export const schema0026 = `
-- Null for a permission. Else JSON: the budget, when the owner was asked, and the amount of the button that raises it.
alter table chat_prompts add column budget text;
create index chat_prompts_budget on chat_prompts (channel) where budget is not null;
`
