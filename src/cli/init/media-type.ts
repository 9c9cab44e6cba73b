export const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/
export const FORM_TYPE = 'application/x-www-form-urlencoded'
/** As `media_type` of a catalog takes it. */
export const PLAIN_TYPE = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/
