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
  /** Create a workspace; dry_run=true only checks the body. */
  readonly 'POST /workspaces': {
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
    /** The token of the bridge; it is only in this answer. */
    readonly auth_token?: string
    /** The command that runs the bridge, with its token. */
    readonly connect?: string
    /** Settings that have no effect, and a name that is taken. */
    readonly warnings?: readonly string[]
  } | {
    /** Whether the backend could run with these settings. */
    readonly ok: boolean
    /** Why it could not. */
    readonly reason?: string
    /** What does not work with the program that was found. */
    readonly limits?: readonly string[]
    /** What the owner should know about the settings. */
    readonly warnings: readonly string[]
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
  /** Change a workspace; a field that is absent stays as it is; dry_run=true only checks the body. */
  readonly 'PATCH /workspaces/{id}': {
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
  } | {
    /** Whether the backend could run with these settings. */
    readonly ok: boolean
    /** Why it could not. */
    readonly reason?: string
    /** What does not work with the program that was found. */
    readonly limits?: readonly string[]
    /** What the owner should know about the settings. */
    readonly warnings: readonly string[]
  }
  /** Delete a workspace; needs confirm=<its name or id> in the query, and cascade=true for those below it. */
  readonly 'DELETE /workspaces/{id}': {
    readonly deleted: readonly string[]
  }
  /** A new token for the bridge of an external workspace, and the command that uses it; earlier tokens stay valid. */
  readonly 'POST /workspaces/{id}/connect-command': {
    /** The token of the bridge; it is only in this answer. */
    readonly auth_token: string
    /** The command that runs the bridge, with its token. */
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
  /** The files of the configuration folder. */
  readonly 'GET /workspaces/{id}/files': {
    readonly files: readonly {
      readonly path: string
      readonly size: number
      readonly modified_at: string
    }[]
    /** There may be more files than are listed. */
    readonly truncated: boolean
  }
  /** Write a file; the raw body is its content; dry_run=true only checks it; If-Match refuses when the file has another ETag. */
  readonly 'PUT /workspaces/{id}/files/{path}': {
    readonly path: string
    readonly size: number
    /** Whether the backend could run with these settings. */
    readonly ok?: boolean
    /** Why it could not. */
    readonly reason?: string
    /** What does not work with the program that was found. */
    readonly limits?: readonly string[]
    /** What the owner should know about the settings. */
    readonly warnings?: readonly string[]
  }
  /** Register a workspace that runs elsewhere. */
  readonly 'POST /registry/register': {
    readonly id: string
    readonly status: 'provisioning' | 'online' | 'needs_login' | 'degraded' | 'offline' | 'paused' | 'failed'
    readonly status_reason: string | null
    readonly queue_depth: number
    /** When to send the next heartbeat. */
    readonly heartbeat_seconds: number
  }
  /** Report that it still runs, and its state. */
  readonly 'POST /registry/heartbeat': ApiAnswers['POST /registry/register']
  /** The address of a workspace. */
  readonly 'GET /registry/discover/{id}': {
    readonly id: string
    readonly name: string
    readonly role: string
    readonly runtime: string
    readonly status: 'provisioning' | 'online' | 'needs_login' | 'degraded' | 'offline' | 'paused' | 'failed'
    readonly status_reason: string | null
    readonly parent_id: string | null
    /** Where its A2A messages are sent. */
    readonly url: string
    /** Where its A2A card is read. */
    readonly card_url: string
  }
  /** The workspaces that this workspace may talk to. */
  readonly 'GET /registry/{id}/peers': {
    readonly peers: readonly {
      readonly id: string
      readonly name: string
      readonly role: string
      readonly runtime: string
      readonly status: 'provisioning' | 'online' | 'needs_login' | 'degraded' | 'offline' | 'paused' | 'failed'
      readonly status_reason: string | null
      readonly parent_id: string | null
      /** Where its A2A messages are sent. */
      readonly url: string
      /** Where its A2A card is read. */
      readonly card_url: string
    }[]
  }
  /** Activity after the number "since" and before the number "before"; "type" and "limit" filter, newest=true reads the last entries, titles=true adds the first words of each task. */
  readonly 'GET /workspaces/{id}/activity': {
    readonly activity: readonly {
      /** Its number in the log. Entries that were stored together share one. */
      readonly seq: number
      readonly at: string
      readonly task_id?: string
      /** status, reply, partial, retry, late, tool, progress, artifact, permission, rule, delegated, text (a piece of a reply, in live events only), or the type of a note. */
      readonly type: string
      readonly state?: string
      /** Of a tool, or of the workspace that was delegated to. */
      readonly name?: string
      /** What exactly a tool does; the task of a delegation; the pattern of a rule, or of what a rule allowed. */
      readonly subject?: string
      /** Of a tool that has ended: the files that it changed, where the agent reports them. */
      readonly diffs?: readonly {
        readonly path: string
        /** Unified text. */
        readonly diff: string
      }[]
      readonly text?: string
      /** The author of a note, the person who answered a permission ask, or the maker of the rule that did. */
      readonly by?: string
      /** Of the answer to a permission ask. */
      readonly principal?: string
      /** Of the answer to a permission ask. */
      readonly door?: string
    }[]
    /** The "since" of the next page; unchanged when nothing is new. */
    readonly next: number
    /** Absent where nothing was found. */
    readonly first?: number
    /** The first words of the message of each task. */
    readonly titles?: Readonly<Record<string, string>>
  }
  /** Add a note to the activity. */
  readonly 'POST /workspaces/{id}/activity': {
    readonly seq: number
  }
  /** Set the status line of a workspace; an empty text removes it. */
  readonly 'PUT /workspaces/{id}/status': {
    readonly status_text: string
  }
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
  /** A task by its id alone. */
  readonly 'GET /tasks/{id}': {
    readonly id: string
    readonly contextId: string
    readonly status: {
      readonly state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_REJECTED' | 'TASK_STATE_AUTH_REQUIRED'
      readonly message?: {
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
      readonly timestamp?: string
    }
    readonly artifacts?: readonly {
      readonly artifactId: string
      readonly name?: string
      readonly description?: string
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
    }[]
    readonly history?: readonly {
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
    }[]
    readonly metadata?: Readonly<Record<string, unknown>>
  }
  /** The story of a message, found by its id, its task id or the id that its sender gave it, with its tree of delegations; "after" reads the next part. */
  readonly 'GET /messages/{id}/story': {
    readonly message_id: string
    readonly task_id: string
    readonly workspace_id: string
    readonly context_id: string
    readonly sender: {
      readonly kind: string
      readonly id: string
      readonly name: string
      readonly door: string
    }
    /** The id that the sender gave the message. */
    readonly sender_message_id: string
    readonly text: string
    readonly task_state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_REJECTED' | 'TASK_STATE_AUTH_REQUIRED'
    readonly steps: readonly {
      readonly at: string
      /** admitted, started, progress, delegated, budget, asked, permission, resumed, failed, lost, answered, ended, late, waiting, running, replayed, discarded. */
      readonly type: string
      readonly text: string
    }[]
    /** What was pushed because of the message: by a door, or to a webhook of its task. */
    readonly deliveries: readonly {
      readonly to: string
      readonly state: string
      readonly tries: number
      readonly error?: string
    }[]
    /** Where the message delegated, or was delegated itself; in the first part of a story only. */
    readonly tree?: {
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
    }
    /** The budgets of messages that cover it, the outermost first; in the first part of a story only. */
    readonly budgets?: readonly {
      readonly max_cost_usd: number
      readonly cost_usd: number
      readonly unknown_turns: number
      readonly state: 'open' | 'asked' | 'stopped'
      readonly task_id: string
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
  /** Which workspaces work for which others now: pairs of ids with the number of unfinished delegations. */
  readonly 'GET /delegations/open': {
    readonly delegations: readonly {
      readonly from: string
      readonly to: string
      readonly count: number
    }[]
  }
  /** What each workspace used today (UTC) and what needs a person; "after" reads the next page. */
  readonly 'GET /overview': {
    readonly workspaces: readonly {
      readonly id: string
      /** Those that no person has handled. */
      readonly dead_letters: number
      /** Tasks of people that ask for an answer or a log-in, among the last 100 tasks. */
      readonly questions: number
      readonly today: {
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
    }[]
    readonly next?: string
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
