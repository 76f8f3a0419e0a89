/** Notifications of the browser. A browser without them, or that refuses them to a page, must not fail the page. */

export function notificationPermission(): NotificationPermission {
  return 'Notification' in window ? Notification.permission : 'denied'
}

/** False where nothing is shown: Chrome on Android has `Notification`, and throws when a page makes one. */
export function notify(title: string, options: NotificationOptions): boolean {
  if (notificationPermission() !== 'granted') return false
  try {
    new Notification(title, options)
    return true
  } catch {
    return false
  }
}

export async function askToNotify(): Promise<NotificationPermission> {
  try {
    return await Notification.requestPermission()
  } catch {
    return 'denied'
  }
}
