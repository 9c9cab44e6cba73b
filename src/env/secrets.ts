/** What a catalog names as a credential is secret too, whatever it is called. */
export const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD|^RPC_URL_|^(CACHE_)?REDIS_URL$/i
/** Hiding shorter values would also replace parts of ordinary words. */
const SHORTEST_SECRET = 6

/** The text with secret values replaced by the names of their variables. */
export function hide(text: string, secrets: ReadonlyMap<string, string | undefined>): string {
  return [...secrets].reduce(
    (shown, [name, value = '']) =>
      value
        .split(',')
        .map((part) => part.trim().replace(/^0x|\/+$/g, ''))
        .filter(({ length }) => length >= SHORTEST_SECRET)
        .reduce((rest, part) => rest.replaceAll(part, `[${name}]`), shown),
    text,
  )
}
