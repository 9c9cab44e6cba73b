import { chat, chatEvents } from './chat.js'

/**
 * Every handler by its name in the catalog.
 *
 * @satisfies {Partial<import('./catalog.d.ts').Handlers>}
 */
export const handlers = {
  chat,
  chat_events: chatEvents,
}
