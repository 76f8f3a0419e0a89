/**
 * Which messages are a task's. The one that opened it has its id and is found by its key; only those that came to it
 * later stand in an index, for most tasks have a single message and every index is paid for by every message.
 */

/** The condition, for a table (or its alias) of messages and an expression that gives the task's id. */
export const messagesOfTask = (messages: string, taskId: string): string =>
  `(${messages}.id = ${taskId} or ${laterMessagesOfTask(messages, taskId)})`

/** The same without the message that opened the task. */
export const laterMessagesOfTask = (messages: string, taskId: string): string =>
  `(${messages}.task_id = ${taskId} and ${messages}.task_id <> ${messages}.id)`
