export function App({ items }: Props): JSX.Element {
  const [open, setOpen] = useState<boolean>(false);
  if (!items.length) return <Empty onClick={() => setOpen(true)} />;
  return (
    <ul>
      {items.map((item) => (item.ok ? <li key={item.id}>{label(item)}</li> : null))}
    </ul>
  );
}
