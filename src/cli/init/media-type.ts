export const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/
export const FORM_TYPE = 'application/x-www-form-urlencoded'
/** A media type that `media_type` of a catalog accepts. */
export const PLAIN_TYPE = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/
