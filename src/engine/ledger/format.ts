/** Changes when stored entries change their shape: an older store is migrated or refused, never misread. */
export const FORMAT = 2

/** For the operator: `store` says what has the format (`the ledger in …`), `found` is what is written there. */
export function refuseFormat(store: string, found: unknown): string {
  const format =
    typeof found === 'number' && Number.isSafeInteger(found) ? `format ${found}` : 'no known format'
  const who =
    typeof found === 'number' && found > FORMAT
      ? 'a newer version has written it; start that one'
      : 'this version cannot migrate it; start the one that has written it'
  return `${store} has ${format}, this version works with format ${FORMAT}: ${who}, or set the store aside and begin with an empty one`
}
