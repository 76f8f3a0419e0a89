/** Words of the WebSocket of the platform that its server and the page must both know. */

/** The stream of created, changed and deleted workspaces. It has no numbers: it begins with a snapshot of all. */
export const PLATFORM_STREAM = '_platform'
/** The close code when the token was revoked: a client does not try again. */
export const REVOKED_CLOSE_CODE = 4401
