/**
 * The answers of the platform by route, made from the API document.
 * `UPDATE_DOCS=1 npm test -- src/doors/http/routes/openapi.test.ts` writes this file.
 */
export interface ApiAnswers {
  /** Whether the platform is alive. */
  readonly 'GET /health': {
    /** Always "ok". */
    readonly status: string
    readonly name: string
    readonly version: string
    readonly pid: number
  }
  /** Whether the platform accepts work. */
  readonly 'GET /ready': {
    /** "ready" or "not_ready". */
    readonly status: string
    readonly reason?: string
  }
  /** Name and version. */
  readonly 'GET /version': {
    readonly name: string
    readonly version: string
    readonly node: string
    /** The versions of A2A that are served. */
    readonly a2a: readonly string[]
    /** Where other machines reach the platform. */
    readonly public_url?: string
  }
  /** This document. */
  readonly 'GET /openapi.json': {
    readonly openapi: string
  }
  /** Make a link that logs one browser in, once; "role" is admin, member or viewer. */
  readonly 'POST /login-links': {
    readonly url: string
    readonly expires_in: number
  }
  /** The agents that Molecule knows: installed, version, logged in, and what to do where something is missing. */
  readonly 'GET /agents': {
    readonly agents: readonly {
      readonly backend: string
      readonly program: string
      readonly installed: boolean
      readonly path?: string
      readonly version?: string
      readonly problem?: string
      readonly logged_in: boolean
      /** What pays for its model, such as a variable or a log-in. */
      readonly pays?: string
      readonly remedy?: string
      readonly warm: boolean
    }[]
  }
  /** The folders in "path", an absolute path on the machine of the platform; the home of its user by default. */
  readonly 'GET /folders': {
    readonly path: string
    readonly parent: string | null
    readonly home: string
    readonly is_git: boolean
    readonly folders: readonly {
      readonly name: string
      readonly path: string
      readonly is_git: boolean
    }[]
    readonly hidden: readonly {
      readonly name: string
      readonly path: string
      readonly is_git: boolean
    }[]
    readonly truncated: boolean
  }
  /** The workspaces that the token reaches; "limit" (100, at most 1,000) and "after" read a page. */
  readonly 'GET /workspaces': {
    readonly workspaces: readonly {
      readonly id: string
      readonly name: string
      readonly role: string
      readonly runtime: string
      readonly status: 'provisioning' | 'online' | 'needs_login' | 'degraded' | 'offline' | 'paused' | 'failed'
      readonly status_reason?: string
      /** What does not work with the program of its agent. Absent: all works. */
      readonly limits?: readonly string[]
      readonly queue_depth?: number
      readonly running?: number
      readonly current_task?: string | null
      /** When the oldest running turn began. */
      readonly current_since?: string
      readonly last_answered_at?: string
      /** Since midnight UTC. */
      readonly today?: {
        readonly turns: number
        /** Turns that reported no cost. */
        readonly unknown_turns: number
        /** Null where no turn reported a cost. */
        readonly cost_usd: number | null
      }
      readonly needs_you?: {
        readonly count: number
        /** The most urgent thing. */
        readonly reason: string
      } | null
      readonly status_text?: string
      readonly status_text_at?: string | null
      readonly model?: string
      readonly parent_id?: string | null
      readonly tier: number
      readonly max_concurrent_tasks: number
      readonly max_attempts: number
      readonly working_dir?: string
      readonly permission?: 'ask' | 'allowed_tools' | 'bypass'
      readonly team?: string
      readonly runtime_config?: Readonly<Record<string, unknown>>
      readonly created_at: string
    }[]
    readonly next?: string
  }
  /** One workspace. */
  readonly 'GET /workspaces/{id}': {
    readonly id: string
    readonly name: string
    readonly role: string
    readonly runtime: string
    readonly status: 'provisioning' | 'online' | 'needs_login' | 'degraded' | 'offline' | 'paused' | 'failed'
    readonly status_reason?: string
    /** What does not work with the program of its agent. Absent: all works. */
    readonly limits?: readonly string[]
    readonly queue_depth?: number
    readonly running?: number
    readonly current_task?: string | null
    /** When the oldest running turn began. */
    readonly current_since?: string
    readonly last_answered_at?: string
    /** Since midnight UTC. */
    readonly today?: {
      readonly turns: number
      /** Turns that reported no cost. */
      readonly unknown_turns: number
      /** Null where no turn reported a cost. */
      readonly cost_usd: number | null
    }
    readonly needs_you?: {
      readonly count: number
      /** The most urgent thing. */
      readonly reason: string
    } | null
    readonly status_text?: string
    readonly status_text_at?: string | null
    readonly model?: string
    readonly parent_id?: string | null
    readonly tier: number
    readonly max_concurrent_tasks: number
    readonly max_attempts: number
    readonly working_dir?: string
    readonly permission?: 'ask' | 'allowed_tools' | 'bypass'
    readonly team?: string
    readonly runtime_config?: Readonly<Record<string, unknown>>
    readonly created_at: string
  }
  /** A new token for the bridge of an external workspace, and the command that uses it; earlier tokens stay valid. */
  readonly 'POST /workspaces/{id}/connect-command': {
    readonly auth_token: string
    readonly connect: string
    readonly earlier_tokens: readonly {
      readonly id: string
      readonly kind: string
      readonly name: string
      readonly role: 'admin' | 'member' | 'viewer' | 'caller' | 'workspace' | 'conversation'
      readonly workspace_id?: string
      readonly conversation_id?: string
      readonly workspaces?: readonly string[]
      readonly created_at: string
      readonly expires_at: string | null
      readonly last_used_at: string | null
      readonly old_secret_until?: string | null
    }[]
  }
  /** Begin the next turn with a new backend, and check whether the backend can run. */
  readonly 'POST /workspaces/{id}/restart': ApiAnswers['GET /workspaces/{id}']
  /** Keep the queue and begin no turn; now=true also stops running turns, which run again later. */
  readonly 'POST /workspaces/{id}/pause': ApiAnswers['GET /workspaces/{id}']
  /** Cancel the tasks of the running turns, and pause; the messages that wait are kept. */
  readonly 'POST /workspaces/{id}/stop': {
    readonly id: string
    readonly name: string
    readonly role: string
    readonly runtime: string
    readonly status: 'provisioning' | 'online' | 'needs_login' | 'degraded' | 'offline' | 'paused' | 'failed'
    readonly status_reason?: string
    /** What does not work with the program of its agent. Absent: all works. */
    readonly limits?: readonly string[]
    readonly queue_depth?: number
    readonly running?: number
    readonly current_task?: string | null
    /** When the oldest running turn began. */
    readonly current_since?: string
    readonly last_answered_at?: string
    /** Since midnight UTC. */
    readonly today?: {
      readonly turns: number
      /** Turns that reported no cost. */
      readonly unknown_turns: number
      /** Null where no turn reported a cost. */
      readonly cost_usd: number | null
    }
    readonly needs_you?: {
      readonly count: number
      /** The most urgent thing. */
      readonly reason: string
    } | null
    readonly status_text?: string
    readonly status_text_at?: string | null
    readonly model?: string
    readonly parent_id?: string | null
    readonly tier: number
    readonly max_concurrent_tasks: number
    readonly max_attempts: number
    readonly working_dir?: string
    readonly permission?: 'ask' | 'allowed_tools' | 'bypass'
    readonly team?: string
    readonly runtime_config?: Readonly<Record<string, unknown>>
    readonly created_at: string
    readonly canceled: readonly string[]
  }
  /** Stop every workspace: cancel the tasks of all running turns, and pause; the messages that wait are kept. */
  readonly 'POST /stop': {
    readonly stopped: readonly {
      readonly id: string
      readonly name: string
      readonly canceled: readonly string[]
      readonly queue_depth: number
    }[]
    readonly failed: readonly {
      readonly id: string
      readonly name: string
      readonly message: string
    }[]
  }
  /** End a pause. */
  readonly 'POST /workspaces/{id}/resume': ApiAnswers['GET /workspaces/{id}']
  /** Wait for messages to run, each with its brief; the call names the leases that the bridge holds. */
  readonly 'POST /workspaces/{id}/inbox/lease': {
    readonly handouts: readonly unknown[]
  }
  /** The turn of a lease begins. */
  readonly 'POST /workspaces/{id}/inbox/begin': {
    readonly standing: 'held' | 'stop' | 'stale'
  }
  /** Renew leases. */
  readonly 'POST /workspaces/{id}/inbox/extend': {
    /** In the order of the keys. */
    readonly standings: readonly ('held' | 'stop' | 'stale')[]
    /** Whether the turn waits for another agent or a person. */
    readonly waiting: readonly boolean[]
  }
  /** Append events of a running turn. */
  readonly 'POST /workspaces/{id}/inbox/append': ApiAnswers['POST /workspaces/{id}/inbox/begin']
  /** Close a lease with its outcome. */
  readonly 'POST /workspaces/{id}/inbox/settle': {
    /** "stale": this result is not the reply. */
    readonly answer: 'settled' | 'stale'
  }
  /** A turn waits and gives up its slot. */
  readonly 'POST /workspaces/{id}/inbox/suspend': {
    /** "refused": too many turns wait. */
    readonly standing: 'held' | 'stop' | 'stale' | 'refused'
  }
  /** The wait of a turn is over. */
  readonly 'POST /workspaces/{id}/inbox/resume': ApiAnswers['POST /workspaces/{id}/inbox/begin']
  /** Ask the sender of the task a question of its turn. */
  readonly 'POST /workspaces/{id}/inbox/ask': ApiAnswers['POST /workspaces/{id}/inbox/suspend']
  /** The conversations, the last changed first; "search" finds a text; "limit" and "after" read a page. */
  readonly 'GET /workspaces/{id}/conversations': {
    readonly conversations: readonly {
      readonly id: string
      readonly context_id: string
      readonly principal: string
      /** Of the first message. */
      readonly sender?: {
        readonly kind: string
        readonly id: string
        readonly name: string
        readonly door: string
      }
      /** The first words. */
      readonly title: string
      /** Of the last message. */
      readonly state: 'queued' | 'running' | 'waiting_for_you' | 'rate_limited' | 'parked' | 'answered' | 'failed' | 'stopped'
      readonly messages: number
      readonly updated_at: string
    }[]
    readonly next?: string
  }
  /** The newest messages of a conversation in order, by its id, the context id of people, or a message or task of it; "before" and "limit" read a page, "at" the one around a message. */
  readonly 'GET /workspaces/{id}/conversations/{conversation}': {
    readonly id: string
    readonly context_id: string
    readonly principal: string
    readonly messages: readonly {
      readonly id: string
      readonly task_id: string
      /** Its number in the conversation, from 1. */
      readonly n: number
      readonly sender_message_id: string
      readonly sender: {
        readonly kind: string
        readonly id: string
        readonly name: string
        readonly door: string
      }
      readonly text: string
      readonly attachments: readonly {
        readonly name?: string
        readonly media_type?: string
        readonly bytes?: number
        /** Its number among the parts, from 0. */
        readonly part: number
        readonly url?: string
      }[]
      readonly state: 'queued' | 'running' | 'waiting_for_you' | 'rate_limited' | 'parked' | 'answered' | 'failed' | 'stopped'
      /** Messages of the conversation before it, while it is queued. */
      readonly place?: number
      readonly next_try_at?: string
      /** Why it waits, failed or asks; of an answered one a notice. */
      readonly reason?: string
      readonly code?: string
      /** What the program printed; for admins and members. */
      readonly detail?: string
      readonly sent_at: string
      readonly started_at?: string
      readonly ended_at?: string
      /** Of the last attempt. */
      readonly duration_ms?: number
      /** How often its turn was lost and run again. */
      readonly interruptions?: number
      readonly reply?: {
        readonly text: string
        /** The turn still runs, or was stopped before its end. */
        readonly partial: boolean
        readonly artifacts: readonly {
          readonly id: string
          readonly name?: string
          readonly description?: string
          /** The beginning of a text. */
          readonly text?: string
          readonly files: readonly {
            readonly name?: string
            readonly media_type?: string
            readonly bytes?: number
            /** Its number among the parts, from 0. */
            readonly part: number
            readonly url?: string
          }[]
        }[]
      }
      readonly tools: readonly {
        readonly name: string
        readonly subject?: string
        readonly state: 'started' | 'finished' | 'failed'
        readonly at: string
        /** Without the time that a person took to answer. */
        readonly duration_ms?: number
        /** While it runs: how long it has waited for a person. */
        readonly waited_ms?: number
        /** The files that it changed, where the agent reports them. */
        readonly diffs?: readonly {
          readonly path: string
          /** Unified text. */
          readonly diff: string
        }[]
      }[]
      readonly more_tools?: boolean
      readonly usage?: {
        readonly turns: number
        /** Turns that did not report all tokens. */
        readonly unknown_turns: number
        /** Turns that did not report their cost. */
        readonly unknown_cost_turns: number
        readonly input_tokens: number | null
        readonly output_tokens: number | null
        readonly cost_usd: number | null
        readonly duration_ms: number | null
      }
      /** The permission that it waits for. */
      readonly ask?: {
        readonly id: string
        readonly tool: string
        readonly subject: string
        readonly asked_at: string
        readonly expires_at: string
      }
      /** Of a failed message: it was replayed or discarded. */
      readonly handled?: boolean
      readonly replayed_as?: string
    }[]
    /** The last number of the log: follow the events from here. */
    readonly seq: number
    /** Send it to read the messages before these. */
    readonly before?: number
    /** There are messages after these. */
    readonly has_newer: boolean
  }
  /** The messages that contain "search", or whose answers do, the newest first; "workspace_id", "limit" and "after" read a part. */
  readonly 'GET /messages': {
    readonly messages: readonly {
      readonly id: string
      readonly task_id: string
      readonly workspace_id: string
      readonly conversation_id: string
      readonly context_id: string
      readonly principal: string
      /** Its number in the conversation, from 1. */
      readonly n: number
      readonly sender: {
        readonly kind: string
        readonly id: string
        readonly name: string
        readonly door: string
      }
      readonly sent_at: string
      readonly found_in: 'message' | 'answer'
      /** The words around the text. */
      readonly excerpt: string
    }[]
    /** There may be more, also where this page is empty. */
    readonly next?: string
  }
  /** The messages that have failed for good, the newest first; "after" reads the next page. */
  readonly 'GET /workspaces/{id}/dead-letters': {
    readonly dead_letters: readonly {
      /** Of the message. */
      readonly id: string
      readonly task_id: string
      readonly context_id: string
      readonly code: string
      readonly reason: string
      /** What the program printed; for admins and members. */
      readonly detail?: string
      /** Attempts that failed. */
      readonly failures: number
      /** Attempts whose worker vanished. */
      readonly losses: number
      readonly sender: {
        readonly kind: 'person' | 'agent' | 'program' | 'schedule'
        readonly id: string
        readonly name: string
        /** The door that the message came through, such as "http" or "discord". */
        readonly door: string
      }
      readonly message: {
        readonly messageId: string
        readonly contextId?: string
        readonly taskId?: string
        readonly role: 'ROLE_USER' | 'ROLE_AGENT'
        readonly parts: readonly {
          readonly text?: string
          /** Bytes as base64. */
          readonly raw?: string
          readonly url?: string
          readonly data?: unknown
          readonly mediaType?: string
          readonly filename?: string
          readonly metadata?: Readonly<Record<string, unknown>>
        }[]
        readonly metadata?: Readonly<Record<string, unknown>>
        readonly extensions?: readonly string[]
        readonly referenceTaskIds?: readonly string[]
      }
      readonly at: string
    }[]
    readonly next?: string
  }
  /** Send a dead letter again. */
  readonly 'POST /workspaces/{id}/dead-letters/{message}/replay': {
    readonly task_id: string
  }
  /** Everything that waits for a person; "workspace_id" filters, "after" reads the next page. */
  readonly 'GET /needs-you': {
    readonly needs_you: readonly {
      readonly kind: 'permission' | 'question' | 'dead_letter' | 'delivery' | 'damaged_reply' | 'login' | 'workspace' | 'budget' | 'turn_limit' | 'pairing' | 'schedule'
      readonly id: string
      /** Empty for a pairing with a bot that has no workspace of its own. */
      readonly workspace_id: string
      /** Null when the workspace is deleted. */
      readonly workspace_name: string | null
      readonly since: string | null
      readonly reason: string
      readonly expires_at?: string
      readonly task_id?: string
      readonly context_id?: string
      /** The question, the message that failed, or the answer that may not have arrived. */
      readonly text?: string
      /** Of a delivery: the door and the channel. Of a pairing: the bot. */
      readonly to?: string
      readonly permission?: {
        readonly id: string
        readonly workspace_id: string
        readonly task_id: string
        readonly tool: string
        /** Exactly what the agent would do. */
        readonly subject: string
        readonly asked_at: string
        /** In seconds; then it is denied. */
        readonly expires_in: number
        /** The rule that "always" makes. */
        readonly would_cover?: {
          readonly tool: string
          readonly scope: 'exact' | 'prefix' | 'folder'
          readonly pattern: string
          readonly sentence: string
        }
        /** A wider rule: "always" with its pattern. */
        readonly would_cover_more?: {
          readonly tool: string
          readonly scope: 'exact' | 'prefix' | 'folder'
          readonly pattern: string
          readonly sentence: string
        }
      }
      readonly budget?: {
        readonly id: string
        readonly workspace_id: string
        /** Null for the budget of a day. */
        readonly task_id: string | null
        readonly max_cost_usd: number
        readonly cost_usd: number
        /** Turns that count and whose cost is not known. */
        readonly unknown_turns: number
        /** Messages that wait for it. */
        readonly waiting: number
        readonly text: string
        readonly asked_at: string
      }
      readonly actions: readonly {
        /** Also the command: molecule pending <name> <id>. */
        readonly name: string
        readonly label: string
        readonly method: 'POST' | 'PATCH' | 'DELETE'
        readonly path: string
        /** Absent where the call needs none, or needs your text. */
        readonly body?: Readonly<Record<string, unknown>>
      }[]
    }[]
    readonly count: number
    readonly next?: string
  }
  /** Decide about an answer that may not have arrived, or could not be sent: it arrived, or send it again. */
  readonly 'POST /deliveries/{id}': {
    readonly id: string
    readonly decision: 'arrived' | 'resend'
  }
  /** The permissions that running turns ask for; "workspace_id" filters, "after" reads the next page. */
  readonly 'GET /pending': {
    readonly pending: readonly {
      readonly id: string
      readonly workspace_id: string
      readonly task_id: string
      readonly tool: string
      /** Exactly what the agent would do. */
      readonly subject: string
      readonly asked_at: string
      /** In seconds; then it is denied. */
      readonly expires_in: number
      /** The rule that "always" makes. */
      readonly would_cover?: {
        readonly tool: string
        readonly scope: 'exact' | 'prefix' | 'folder'
        readonly pattern: string
        readonly sentence: string
      }
      /** A wider rule: "always" with its pattern. */
      readonly would_cover_more?: {
        readonly tool: string
        readonly scope: 'exact' | 'prefix' | 'folder'
        readonly pattern: string
        readonly sentence: string
      }
    }[]
    readonly budgets: readonly {
      readonly id: string
      readonly workspace_id: string
      /** Null for the budget of a day. */
      readonly task_id: string | null
      readonly max_cost_usd: number
      readonly cost_usd: number
      /** Turns that count and whose cost is not known. */
      readonly unknown_turns: number
      /** Messages that wait for it. */
      readonly waiting: number
      readonly text: string
      readonly asked_at: string
    }[]
    readonly next?: string
  }
  /** Allow or deny this one ask, once; "always" also makes a rule: the exact one, or the one with the given "pattern". */
  readonly 'POST /pending/{id}': {
    readonly id: string
    readonly decision: 'allow' | 'deny'
    readonly rule?: {
      readonly id: string
      readonly workspace_id: string
      readonly tool: string
      readonly scope: 'exact' | 'prefix' | 'folder'
      readonly pattern: string
      readonly made_by: string
      readonly made_at: string
      /** How many asks it has allowed. */
      readonly used: number
      readonly last_used_at?: string
    }
  }
  /** What is always allowed in this workspace, the oldest first; "after" reads the next page. */
  readonly 'GET /workspaces/{id}/rules': {
    readonly rules: readonly {
      readonly id: string
      readonly workspace_id: string
      readonly tool: string
      readonly scope: 'exact' | 'prefix' | 'folder'
      readonly pattern: string
      readonly made_by: string
      readonly made_at: string
      /** How many asks it has allowed. */
      readonly used: number
      readonly last_used_at?: string
    }[]
    readonly next?: string
  }
  /** Raise a budget that is spent to "max_cost_usd", so that its messages go on, or stop it and cancel them. */
  readonly 'POST /budgets/{id}': {
    readonly id: string
    readonly decision: 'raise' | 'stop'
    /** As it was sent. */
    readonly max_cost_usd?: number
  }
  /** The trees of delegations that the workspace is in, the latest first; "limit" and "after" read a page. */
  readonly 'GET /workspaces/{id}/delegations': {
    readonly trees: readonly {
      /** Of the whole tree; for admins and members. */
      readonly cost_usd?: number
      readonly unknown_turns?: number
      readonly tasks: readonly {
        readonly task_id: string
        readonly parent_task_id: string | null
        readonly depth: number
        readonly workspace_id: string
        readonly workspace_name: string | null
        readonly state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_REJECTED' | 'TASK_STATE_AUTH_REQUIRED'
        readonly turns: number
        readonly sent_at?: string
        readonly started_at?: string
        readonly ended_at?: string
        readonly usage?: {
          readonly turns: number
          /** Turns that did not report all tokens. */
          readonly unknown_turns: number
          /** Turns that did not report their cost. */
          readonly unknown_cost_turns: number
          readonly input_tokens: number | null
          readonly output_tokens: number | null
          readonly cost_usd: number | null
          readonly duration_ms: number | null
        }
        /** The first words of its message. */
        readonly text: string
      }[]
      /** Of the first message; for admins and members. */
      readonly budget?: {
        readonly max_cost_usd: number
        readonly cost_usd: number
        readonly unknown_turns: number
        readonly state: 'open' | 'asked' | 'stopped'
        readonly task_id: string
      }
      /** Tasks that the caller may not see. */
      readonly hidden: number
    }[]
    readonly next?: string
  }
  /** What the turns of all workspaces used, by day and by workspace; "days" is 30 by default. */
  readonly 'GET /usage': {
    readonly total: {
      readonly turns: number
      /** Turns that did not report all tokens. */
      readonly unknown_turns: number
      /** Turns that did not report their cost. */
      readonly unknown_cost_turns: number
      readonly input_tokens: number | null
      readonly output_tokens: number | null
      readonly cost_usd: number | null
      readonly duration_ms: number | null
    }
    /** UTC days that had turns, the latest first. */
    readonly days: readonly {
      readonly turns: number
      /** Turns that did not report all tokens. */
      readonly unknown_turns: number
      /** Turns that did not report their cost. */
      readonly unknown_cost_turns: number
      readonly input_tokens: number | null
      readonly output_tokens: number | null
      readonly cost_usd: number | null
      readonly duration_ms: number | null
      readonly day: string
    }[]
    readonly workspaces: readonly {
      readonly turns: number
      /** Turns that did not report all tokens. */
      readonly unknown_turns: number
      /** Turns that did not report their cost. */
      readonly unknown_cost_turns: number
      readonly input_tokens: number | null
      readonly output_tokens: number | null
      readonly cost_usd: number | null
      readonly duration_ms: number | null
      readonly workspace_id: string
      readonly name: string | null
    }[]
  }
  /** What the turns used, by day, by conversation and by message; "days" is 7 by default. */
  readonly 'GET /workspaces/{id}/usage': {
    readonly total: {
      readonly turns: number
      /** Turns that did not report all tokens. */
      readonly unknown_turns: number
      /** Turns that did not report their cost. */
      readonly unknown_cost_turns: number
      readonly input_tokens: number | null
      readonly output_tokens: number | null
      readonly cost_usd: number | null
      readonly duration_ms: number | null
    }
    /** UTC days that had turns, the latest first. */
    readonly days: readonly {
      readonly turns: number
      /** Turns that did not report all tokens. */
      readonly unknown_turns: number
      /** Turns that did not report their cost. */
      readonly unknown_cost_turns: number
      readonly input_tokens: number | null
      readonly output_tokens: number | null
      readonly cost_usd: number | null
      readonly duration_ms: number | null
      readonly day: string
    }[]
    readonly conversations: readonly {
      readonly turns: number
      /** Turns that did not report all tokens. */
      readonly unknown_turns: number
      /** Turns that did not report their cost. */
      readonly unknown_cost_turns: number
      readonly input_tokens: number | null
      readonly output_tokens: number | null
      readonly cost_usd: number | null
      readonly duration_ms: number | null
      readonly conversation_id: string
      readonly context_id: string
    }[]
    readonly messages: readonly {
      readonly turns: number
      /** Turns that did not report all tokens. */
      readonly unknown_turns: number
      /** Turns that did not report their cost. */
      readonly unknown_cost_turns: number
      readonly input_tokens: number | null
      readonly output_tokens: number | null
      readonly cost_usd: number | null
      readonly duration_ms: number | null
      readonly message_id: string
      readonly task_id: string
    }[]
  }
  /** Remember a text; a summary is forgotten after 30 days. */
  readonly 'POST /workspaces/{id}/memories': {
    readonly id: string
    /** In full: "workspace:<id>" or "team:<id>". */
    readonly namespace: string
    readonly kind: 'memory' | 'summary'
    readonly text: string
    /** The id of a workspace, or the name of the token of a person. */
    readonly written_by: string
    readonly created_at: string
    readonly expires_at: string | null
  }
  /** The memories that match `query`, the best first; without it all of them, the newest first. */
  readonly 'GET /workspaces/{id}/memories': {
    readonly memories: readonly {
      readonly id: string
      /** In full: "workspace:<id>" or "team:<id>". */
      readonly namespace: string
      readonly kind: 'memory' | 'summary'
      readonly text: string
      /** The id of a workspace, or the name of the token of a person. */
      readonly written_by: string
      readonly created_at: string
      readonly expires_at: string | null
    }[]
    /** Null on the last page, and always with `query`. */
    readonly next: string | null
  }
  /** MCP: a stream of messages that no request asked for; this server has none. */
  readonly 'GET /workspaces/{id}/mcp': {
    readonly jsonrpc: '2.0'
    readonly error: {
      readonly code: number
      readonly message: string
    }
    readonly id: null
  }
  /** MCP: the end of a session; this server has none. */
  readonly 'DELETE /workspaces/{id}/mcp': ApiAnswers['GET /workspaces/{id}/mcp']
  /** Send a message at times; `webhook` receives the answers, signed with the secret of this answer. */
  readonly 'POST /workspaces/{id}/schedules': {
    readonly id: string
    readonly workspace_id: string
    readonly name: string
    readonly cron: string
    readonly time_zone: string
    readonly text: string
    /** What happens to times at which no platform ran: one message later, or none. */
    readonly missed: 'once' | 'skip'
    readonly same_conversation: boolean
    /** Null also for a viewer, because an address often has a key in it. */
    readonly webhook: string | null
    /** The team whose file made the schedule. */
    readonly team: string | null
    readonly paused: boolean
    /** Null when it is paused, or when no further time follows. */
    readonly next_at: string | null
    /** Why the last time was left out, or why the platform paused it. */
    readonly note: string | null
    /** Null before the first run. */
    readonly last: {
      readonly at: string | null
      readonly task_id: string
      /** Null when the task is no longer stored. */
      readonly state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_REJECTED' | 'TASK_STATE_AUTH_REQUIRED' | null
      /** The first words of the answer. */
      readonly text: string
    } | null
    readonly webhook_secret?: string
  }
  /** The schedules of all workspaces, or of the one that `workspace` names; `after` reads the next page. */
  readonly 'GET /schedules': {
    readonly schedules: readonly {
      readonly id: string
      readonly workspace_id: string
      readonly name: string
      readonly cron: string
      readonly time_zone: string
      readonly text: string
      /** What happens to times at which no platform ran: one message later, or none. */
      readonly missed: 'once' | 'skip'
      readonly same_conversation: boolean
      /** Null also for a viewer, because an address often has a key in it. */
      readonly webhook: string | null
      /** The team whose file made the schedule. */
      readonly team: string | null
      readonly paused: boolean
      /** Null when it is paused, or when no further time follows. */
      readonly next_at: string | null
      /** Why the last time was left out, or why the platform paused it. */
      readonly note: string | null
      /** Null before the first run. */
      readonly last: {
        readonly at: string | null
        readonly task_id: string
        /** Null when the task is no longer stored. */
        readonly state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_REJECTED' | 'TASK_STATE_AUTH_REQUIRED' | null
        /** The first words of the answer. */
        readonly text: string
      } | null
    }[]
    readonly next?: string
  }
  /** Change, pause or resume a schedule. */
  readonly 'PATCH /schedules/{schedule}': {
    readonly id: string
    readonly workspace_id: string
    readonly name: string
    readonly cron: string
    readonly time_zone: string
    readonly text: string
    /** What happens to times at which no platform ran: one message later, or none. */
    readonly missed: 'once' | 'skip'
    readonly same_conversation: boolean
    /** Null also for a viewer, because an address often has a key in it. */
    readonly webhook: string | null
    /** The team whose file made the schedule. */
    readonly team: string | null
    readonly paused: boolean
    /** Null when it is paused, or when no further time follows. */
    readonly next_at: string | null
    /** Why the last time was left out, or why the platform paused it. */
    readonly note: string | null
    /** Null before the first run. */
    readonly last: {
      readonly at: string | null
      readonly task_id: string
      /** Null when the task is no longer stored. */
      readonly state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_REJECTED' | 'TASK_STATE_AUTH_REQUIRED' | null
      /** The first words of the answer. */
      readonly text: string
    } | null
  }
  /** Send the message now; refused while the last run works. */
  readonly 'POST /schedules/{schedule}/run': ApiAnswers['POST /workspaces/{id}/dead-letters/{message}/replay']
  /** Connect a bot of a chat service; its token is checked first and never shown again; "replace" changes a known channel. */
  readonly 'POST /channels': {
    readonly name: string
    readonly kind: string
    /** The name of the bot on the service. */
    readonly account: string | null
    /** Answers in direct chats, and where the bot is mentioned. */
    readonly workspace_id: string | null
    /** Why it does not work at the moment. */
    readonly problem: string | null
    readonly allowed_people: readonly string[]
    /** Null: all places are answered. */
    readonly allowed_places: readonly string[] | null
    readonly allowed_bots: readonly string[]
    readonly bindings: readonly {
      readonly place: string
      readonly workspace_id: string
    }[]
    readonly steps: readonly string[]
  }
  /** The chat channels with their bindings, without their tokens. */
  readonly 'GET /channels': {
    /** A viewer does not see who is allowed. */
    readonly channels: readonly {
      readonly name: string
      readonly kind: string
      /** The name of the bot on the service. */
      readonly account: string | null
      /** Answers in direct chats, and where the bot is mentioned. */
      readonly workspace_id: string | null
      /** Why it does not work at the moment. */
      readonly problem: string | null
      readonly allowed_people?: readonly string[]
      /** Null: all places are answered. */
      readonly allowed_places?: readonly string[] | null
      readonly allowed_bots?: readonly string[]
      readonly bindings: readonly {
        readonly place: string
        readonly workspace_id: string
      }[]
    }[]
  }
  /** Let a workspace answer every message of a chat, channel or thread. */
  readonly 'PUT /channels/{channel}/bindings/{place}': {
    readonly channel: string
    readonly place: string
    readonly workspace_id: string
  }
  /** The people who wrote to a bot, and how many of their messages are held. */
  readonly 'GET /pairings': {
    readonly pairings: readonly {
      readonly channel: string
      /** The id of the person on the service. */
      readonly person: string
      readonly name: string
      readonly state: 'pending' | 'approved' | 'denied'
      readonly role: 'user' | 'owner'
      /** Null unless the pairing is pending. */
      readonly code: string | null
      readonly decided_by: string | null
      /** Messages that wait for the decision. */
      readonly held: number
      readonly created_at: string
    }[]
  }
  /** Let a person talk to a bot, by code or by "<channel>/<person>"; the held messages are answered now; only an admin makes or changes an owner. */
  readonly 'POST /pairings/{pairing}/approve': {
    readonly channel: string
    /** The id of the person on the service. */
    readonly person: string
    readonly name: string
    readonly state: 'pending' | 'approved' | 'denied'
    readonly role: 'user' | 'owner'
    /** Null unless the pairing is pending. */
    readonly code: string | null
    readonly decided_by: string | null
    /** Messages that wait for the decision. */
    readonly held: number
    readonly created_at: string
  }
  /** Ignore a person from now on, and drop the held messages. */
  readonly 'POST /pairings/{pairing}/deny': ApiAnswers['POST /pairings/{pairing}/approve']
  /** Which workspaces work for which others now: pairs of ids with the number of unfinished delegations. */
  readonly 'GET /delegations/open': {
    readonly delegations: readonly {
      readonly from: string
      readonly to: string
      readonly count: number
    }[]
  }
  /** The token or session of this request: its name, its role, and the actions that it may do. */
  readonly 'GET /me': {
    readonly token_id: string
    readonly name: string
    readonly role: 'admin' | 'member' | 'viewer' | 'caller' | 'workspace' | 'conversation'
    readonly principal: string
    readonly workspace_id?: string
    readonly actions: readonly string[]
  }
  /** Create a token; its secret is only in this answer. */
  readonly 'POST /tokens': {
    readonly id: string
    /** The secret. */
    readonly token: string
  }
  /** All tokens and sessions, without their secrets. */
  readonly 'GET /tokens': {
    readonly tokens: readonly {
      readonly id: string
      readonly kind: string
      readonly name: string
      readonly role: 'admin' | 'member' | 'viewer' | 'caller' | 'workspace' | 'conversation'
      readonly workspace_id?: string
      readonly conversation_id?: string
      readonly workspaces?: readonly string[]
      readonly created_at: string
      readonly expires_at: string | null
      readonly last_used_at: string | null
      readonly old_secret_until?: string | null
    }[]
  }
  /** Create a new secret; the old one stays valid for the overlap. */
  readonly 'POST /tokens/{id}/rotate': ApiAnswers['POST /tokens']
}
