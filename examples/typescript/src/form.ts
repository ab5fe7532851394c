// Forms that workflows ask people to fill in, and the answers, with the types of their fields.

/** A field of a form: a JSON Schema of a string, number or boolean. Required unless `optional`. */
export interface Field {
  type: 'string' | 'number' | 'integer' | 'boolean';
  enum?: readonly string[];
  optional?: boolean;
  [keyword: string]: unknown; // title, description, default, minLength, maximum, format, …
}
export type Form = Record<string, Field>;

type Value<F extends Field> =
  F['type'] extends 'boolean' ? boolean
  : F['type'] extends 'number' | 'integer' ? number
  : F extends { enum: readonly (infer Choice)[] } ? Choice
  : string;
type Optional<F extends Form> = { [K in keyof F]: F[K] extends { optional: true } ? K : never }[keyof F];
export type Content<F extends Form> =
  { [K in Exclude<keyof F, Optional<F>>]: Value<F[K]> } & { [K in Optional<F>]?: Value<F[K]> };
export type Answer<F extends Form> = { action: 'accept'; content: Content<F> } | { action: 'decline' | 'cancel' };

/** The form as MCP has it: an object with fields of primitive types. */
export function requestedSchema(form: Form): object {
  const properties = Object.fromEntries(Object.entries(form).map(([name, { optional, ...field }]) => [name, field]));
  return { type: 'object', properties, required: Object.keys(form).filter((name) => !form[name]?.optional) };
}

/** The answer with the fields of the form and no others, or what is wrong with it: anyone can send a signal. */
export function readAnswer({ action, content }: any, form: Form): Answer<Form> | string {
  if (action === 'decline' || action === 'cancel') return { action };
  if (action !== 'accept') return `action ${JSON.stringify(action)} is not accept, decline or cancel`;
  const given = Object.entries(form).filter(([name, field]) => content?.[name] !== undefined || !field.optional);
  for (const [name, field] of given) {
    if (!fits(content?.[name], field)) return `${name} is not ${field.enum?.join(' or ') ?? `of type ${field.type}`}`;
  }
  return { action, content: Object.fromEntries(given.map(([name]) => [name, content[name]])) };
}

function fits(value: unknown, field: Field): boolean {
  if (field.type === 'integer') return Number.isInteger(value);
  return typeof value === field.type && (field.enum?.includes(value as string) ?? true);
}
