/**
 * Which messages belong to a task. The message that opened it has the task's id and is found by its primary key. Only
 * later messages are in an index: most tasks have a single message, and every message pays for every index.
 */

/** An SQL condition, for a table or alias of messages and an expression for the task's id. */
export const messagesOfTask = (messages: string, taskId: string): string =>
  `(${messages}.id = ${taskId} or ${laterMessagesOfTask(messages, taskId)})`

/** The same without the message that opened the task. */
export const laterMessagesOfTask = (messages: string, taskId: string): string =>
  `(${messages}.task_id = ${taskId} and ${messages}.task_id <> ${messages}.id)`
