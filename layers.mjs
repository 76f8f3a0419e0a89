/**
 * The import table: which layer may import which, and which room owns which table of the store. `scripts/layers.ts` and
 * `scripts/table-use.ts` enforce it in `npm run check`. To allow an import between two layers, change this file and say why in
 * the commit.
 *
 * A layer may always import its own files and every leaf. `mayImport` lists other layers, or single files of them: seams,
 * which describe a layer without its implementation. Of a file in `mayImportTypes` only the types may be imported.
 *
 * Within a layer, at every depth, the folders beside each other form no circle. There is no exception to it.
 */

/** @type {import('./scripts/layers.ts').LayerTable & import('./scripts/table-use.ts').TableOwners} */
export const layerTable = {
  /** Import no other file of the repository; every layer may import them. */
  leaves: [
    'src/errors.ts',
    'src/trim-end.ts',
    'src/truncate.ts',
    'src/usd.ts',
    'src/log.ts',
    'src/markdown.ts',
    'src/backoff.ts',
    'src/clock.ts',
    'src/wait.ts',
    'src/ids.ts',
    'src/duration.ts',
    'src/no-reply.ts',
    'src/metrics.ts',
    'src/token-mask.ts',
    'src/printable.ts',
  ],

  layers: {
    'src/protocol': { mayImport: [] },
    'src/process': { mayImport: [] },
    'src/store': { mayImport: [] },
    'src/config': { mayImport: ['src/protocol'] },
    // The contract of the HTTP API. It may use the words of the rooms behind it.
    'src/api': {
      mayImport: [
        'src/protocol',
        // How long usage is kept.
        'src/inbox/rows/turn-usage.ts',
        // The limits of a memory and of a search.
        'src/workspaces/memories.ts',
        'src/workspaces/tokens.ts',
        'src/workspaces/workspace.ts',
      ],
    },
    'src/client': { mayImport: ['src/protocol', 'src/inbox/worker.ts'], mayImportTypes: ['src/api/api.ts'] },
    'src/workspaces': {
      mayImport: [
        'src/protocol',
        'src/store',
        'src/inbox/worker.ts',
        'src/inbox/queues.ts',
        'src/inbox/offline.ts',
        // Its statements and reads for the transactions of a workspace and for the brief.
        'src/inbox/queue-rows.ts',
        'src/inbox/push-ends.ts',
        'src/inbox/brief-reads.ts',
      ],
    },
    'src/inbox': { mayImport: ['src/protocol', 'src/store'] },
    // Reads for people: SQL to the answers of the contract. Of the rooms that write it may know what their rows mean.
    'src/views': {
      mayImport: [
        'src/protocol',
        'src/store',
        'src/inbox/rows/dedupe.ts',
        'src/inbox/budget/budget-rows.ts',
        // A need and a note of the activity name a delivery alike.
        'src/inbox/delivery-name.ts',
        'src/inbox/delegate/tree.ts',
        'src/inbox/read/event-log.ts',
        'src/inbox/read/log-wire.ts',
        'src/inbox/read/partial-artifacts.ts',
        'src/inbox/read/principals.ts',
        'src/inbox/read/task-list.ts',
        'src/inbox/read/task-messages.ts',
        'src/inbox/read/why-waiting.ts',
        'src/inbox/rows/ask.ts',
        'src/inbox/rows/log.ts',
        'src/inbox/rows/message.ts',
        'src/inbox/rows/status-message.ts',
        'src/inbox/rows/task-messages.ts',
        'src/inbox/rules/rule-pattern.ts',
        'src/workspaces/hide-secrets.ts',
        'src/workspaces/may-talk.ts',
        'src/workspaces/memory/find-memories.ts',
        // How many tokens there may be.
        'src/workspaces/tokens.ts',
        'src/workspaces/workspace.ts',
      ],
      mayImportTypes: [
        'src/api/api.ts',
        // What the JSON of a reply address holds.
        'src/inbox/delivery.ts',
        'src/inbox/owners.ts',
        'src/inbox/worker.ts',
        // What the JSON columns of a channel and of a schedule hold.
        'src/doors/chat/store/channels.ts',
        'src/workspaces/schedules.ts',
      ],
    },
    'src/backends': {
      mayImport: ['src/protocol', 'src/process', 'src/client'],
      // An adapter may have a kind of chat channel beside its backend, or alone.
      mayImportTypes: ['src/doors/chat/channel.ts'],
      // Each folder is one backend. Backends may import the engine, but not each other.
      engines: ['src/backends/engine'],
    },
    'src/runtime': {
      mayImport: ['src/protocol', 'src/inbox/worker.ts', 'src/backends/backend.ts', 'src/backends/options.ts'],
    },
    // The tables of the chat door: channels, pairings, what it handled. No other door has rows of its own.
    'src/doors/chat/store': { mayImport: ['src/store', 'src/workspaces/existing-workspace.ts'] },
    'src/doors': {
      mayImport: [
        'src/protocol',
        'src/api',
        'src/doors/chat/store',
        'src/workspaces/workspace.ts',
        'src/workspaces/workspace-files.ts',
        'src/workspaces/registry.ts',
        'src/workspaces/presence.ts',
        'src/workspaces/hide-secrets.ts',
        'src/workspaces/may-talk.ts',
        'src/workspaces/memories.ts',
        'src/workspaces/schedules.ts',
        'src/workspaces/tokens.ts',
        'src/inbox/reception.ts',
        'src/inbox/worker.ts',
        'src/inbox/bridges.ts',
        'src/inbox/activity.ts',
        'src/inbox/owners.ts',
        'src/inbox/delivery.ts',
        'src/inbox/delivery-name.ts',
        'src/views',
        'src/client',
      ],
      // The store, which doors only hand on to views.
      mayImportTypes: ['src/store/store.ts'],
      engines: ['src/doors/chat'],
    },
    'src/cli': { mayImport: 'everything' },
    // The canvas may import the protocol and the client, but nothing that runs on the server.
    web: { mayImport: ['src/protocol', 'src/client'], mayImportTypes: ['src/api/api.ts'] },
  },

  /** Files here may import anything, and no layer may import them. */
  outside: ['test', 'bench', 'scripts', 'layers.mjs', 'web/vite.config.ts'],

  /** Which room a table belongs to. Its files may name the table in SQL; `scripts/table-use.ts` checks it. */
  tables: {
    'src/inbox': [
      'asks',
      'budget_waits',
      'budgets',
      'conversations',
      'damaged_replies',
      'deliveries',
      // Only while the migration to schema 34 runs: SQLite cannot make a column nullable in place.
      'deliveries_next',
      'delivery_parts',
      'events',
      'messages',
      'permission_rules',
      'push_configs',
      'tasks',
      'turn_notes',
      'turn_usage',
      'upkeep_clock',
      'workspace_load',
    ],
    'src/doors/chat/store': [
      'channel_bindings',
      'channel_homes',
      'channels',
      'chat_messages',
      'chat_places',
      'chat_prompts',
      'held_messages',
      'pairings',
    ],
    'src/workspaces': [
      'memories',
      'memory_words',
      'presence',
      'schedules',
      'secrets',
      'sessions',
      'token_runs',
      'tokens',
      'workspaces',
    ],
    'src/cli': ['readiness'],
  },

  /** Rooms that may name every table, and only read. */
  readers: ['src/views'],

  /** Files that name tables of other rooms. The list only gets shorter: a file that needs no exception must not have one. */
  tableReaders: {
    'src/inbox/delegate/workspace-name.ts': ['workspaces'],
    'src/inbox/deliver/push-configs.ts': ['tokens'],
    'src/inbox/commands/workspace-queue.ts': ['sessions'],
    'src/inbox/read/why-waiting.ts': ['presence'],
    'src/inbox/upkeep/retention.ts': ['sessions'],
    'src/workspaces/workspace-rows.ts': ['messages', 'workspace_load'],
  },

  /** Loads adapters, which are files of the owner's data folder and not of the repository. */
  loaders: ['src/backends/adapters.ts'],
}
