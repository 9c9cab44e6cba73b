import { isJsonObject, type Json, type JsonObject } from 'ratecard/handler'

/** What a page states of itself as JSON-LD; members are missing where it states none. */
export interface LinkedData {
  readonly title?: string
  readonly description?: string
  readonly byline?: string
  readonly site_name?: string
  readonly lang?: string
  readonly published_at?: string
}

const ARTICLE = /(?:Article|Posting|Report|Recipe|Review)$/

/** Reads the scripts of a page: its article, else nothing; what is no JSON is left out. */
export function readLinkedData(scripts: readonly string[]): LinkedData {
  const article = scripts.flatMap(nodesIn).find((node) => typesOf(node).some((type) => ARTICLE.test(type)))
  if (article === undefined) return {}
  const { headline, name, description, author, publisher, inLanguage, datePublished } = article
  return {
    ...member('title', headline ?? name),
    ...member('description', description),
    ...member('byline', namesOf(author)),
    ...member('site_name', namesOf(publisher)),
    ...member('lang', inLanguage),
    ...member('published_at', datePublished),
  }
}

/** The objects of one script: alone, in a list, or in a graph. */
function nodesIn(script: string): readonly JsonObject[] {
  try {
    const value: Json = JSON.parse(script)
    const listed = isJsonObject(value) && Array.isArray(value['@graph']) ? value['@graph'] : value
    return (Array.isArray(listed) ? listed : [listed]).filter(isJsonObject)
  } catch {
    return []
  }
}

function typesOf({ '@type': type }: JsonObject): readonly string[] {
  return (Array.isArray(type) ? type : [type]).filter((each) => typeof each === 'string')
}

/** Of one or several persons or organizations. */
function namesOf(value: Json | undefined): string | undefined {
  const names = (Array.isArray(value) ? value : [value]).flatMap((each) => {
    const name = isJsonObject(each) ? each['name'] : each
    return typeof name === 'string' ? [name] : []
  })
  return names.length === 0 ? undefined : names.join(', ')
}

function member<Name extends string>(name: Name, value: Json | undefined): Partial<Record<Name, string>>
function member(name: string, value: Json | undefined): Record<string, string> {
  return typeof value === 'string' ? { [name]: value } : {}
}
