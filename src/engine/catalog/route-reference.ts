const METHOD = 'GET|POST|PUT|PATCH|DELETE'
/** A path may have templates, which are in braces too. */
const REFERENCE = new RegExp(`\\{route: *((?:(?:${METHOD}) )?/(?:[^{}\\s]|\\{[^{}]*\\})*) *\\}`, 'g')

/** Keys of the routes that a text of the catalog names: `{route: /paid/app/{appid}}` names `/paid/app/{appid}`. */
export function referencesIn(text: string): string[] {
  return [...text.matchAll(REFERENCE)].map(([, key = '']) => keyOf(key))
}

/** The text with every reference in the words of its reader: a path over HTTP, the name of a tool in MCP. */
export function spellReferences(text: string, spell: (key: string) => string): string {
  return text.replace(REFERENCE, (_, key: string) => spell(keyOf(key)))
}

/** The text for readers over HTTP, where a route is known by its key. */
export function spellPaths(text: string): string {
  return spellReferences(text, (key) => key)
}

/** As `routeKey` writes it: without the method GET. */
function keyOf(key: string): string {
  return key.replace(/^GET /, '')
}
