/** `petId` and `X-Pet-ID` as a catalog names them: `pet_id`, `x_pet_id`; Twilio's `StartTime>`: `start_time_after`. */
export function snake(name: string): string {
  return name
    .replace(/>$/, '_after')
    .replace(/<$/, '_before')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+|_+$/g, '')
}

/** At most so many characters, ended after a word. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text
  const cut = text.slice(0, most)
  return (/\s/.test(text.charAt(most)) ? cut : cut.replace(/\s+\S*$/, '')).replace(/[\s,;:(–-]+$/, '')
}

/** Assigns unique names: the candidate, or the candidate with a number. */
export function uniqueNames(join: string): (wish: string) => string {
  const taken = new Set<string>()
  return (wish) => {
    let name = wish
    for (let number = 2; taken.has(name.toLowerCase()); number += 1) name = `${wish}${join}${number}`
    taken.add(name.toLowerCase())
    return name
  }
}
